//go:build linux

package main

import (
	"time"

	"preflight/internal/probe/wire"
)

// silence is how long the controller may say nothing during this request; 0 for ever. Where the network breaks without a word,
// nothing else tells the host that nobody watches its cards any more.
func (s *supervisor) silence() time.Duration {
	if s.request.Command != wire.CommandBurn || s.request.Burn == nil {
		return 0
	}
	return seconds(s.request.Burn.Silence)
}

// heardOf is the input while a request is watched by its controller; nil, which never speaks, otherwise: what comes then is the
// next request.
func (s *supervisor) heardOf() <-chan []byte {
	if s.silence() == 0 {
		return nil
	}
	return s.heard
}
