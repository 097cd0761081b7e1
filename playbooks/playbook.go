package playbooks

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Playbook is one piece of provisioning, as it is written.
type Playbook struct {
	Name    string
	Title   string
	TitleZh string
	Doc     string
	Clears  []string // codes of remedies that it does
	Params  []Param
	Locals  []*hcl.Attribute // names for expressions that several tasks use, seen as local.NAME
	When    hcl.Expression   // whether it applies to a host; nil: always
	Why     string           // why it does not, when When is false
	Notes   []string         // for a person: what only hands can do
	Tasks   []Task
	Source  string // file
}

// Param is something that a user may set.
type Param struct {
	Name    string
	Default cty.Value
	Doc     string
	OneOf   []string
}

// Task is one step of a playbook: exactly one block of a kind that knows its state.
type Task struct {
	Name   string
	When   hcl.Expression // nil: always
	Reboot bool
	Verify hcl.Expression // a script that proves the task once it is done; nil: reading the state again is proof enough
	Kind   string
	Body   *hclsyntax.Body
	Range  hcl.Range
}

// Param finds a parameter.
func (p Playbook) Param(name string) (Param, bool) {
	for _, x := range p.Params {
		if x.Name == name {
			return x, true
		}
	}
	return Param{}, false
}
