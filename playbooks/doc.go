// Package playbooks is where rigs will be provisioned: playbooks as data, and the engine that plans, applies and
// verifies them. This version only reads hosts and judges them; nothing here changes one.
package playbooks
