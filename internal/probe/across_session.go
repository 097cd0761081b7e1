package probe

import (
	"context"
	"errors"
	"io"

	"preflight/internal/probe/wire"
)

// session is the helper's stay on one host. The meeting puts orders, the conversation answers them.
type session struct {
	rig    string
	orders chan order
	ended  chan struct{}
	err    error // after ended
	c      *conversation
	lines  []wire.Line // of the last order
}

type order struct {
	request wire.Request
	heard   func(wire.Line)
	reply   chan reply
}

type reply struct {
	answer answer
	gone   bool
}

// meet begins the helper's stay on every host.
func (m *meeting) meet(ctx context.Context) {
	for _, x := range m.members {
		nonce := newNonce()
		s := &session{rig: x.Rig, orders: make(chan order), ended: make(chan struct{})}
		s.c = &conversation{nonce: nonce, find: Helper, order: s.serve}
		if m.o.helper != nil {
			s.c.find = m.o.helper
		}
		m.sessions = append(m.sessions, s)
		script := fillNative(x.Facts, nonce, stay(m.o))
		go func() {
			s.err = x.Host.Talk(ctx, script, s.c.talk)
			close(s.ended)
		}()
	}
}

// part ends every stay: the helpers end with their input.
func (m *meeting) part() {
	for _, s := range m.sessions {
		close(s.orders)
	}
	for _, s := range m.sessions {
		<-s.ended
	}
}

// serve answers the meeting's orders until there are no more.
func (s *session) serve(c *conversation) error {
	for o := range s.orders {
		a, gone, err := c.put(o.request, o.heard)
		o.reply <- reply{a, gone || err != nil}
		if gone || err != nil {
			return err
		}
	}
	return nil
}

// ask puts one order; gone says that the helper is not there any more.
func (s *session) ask(r wire.Request, heard func(wire.Line)) reply {
	o := order{r, heard, make(chan reply, 1)}
	select {
	case s.orders <- o:
	case <-s.ended:
		return reply{gone: true}
	}
	select {
	case x := <-o.reply:
		return x
	case <-s.ended:
		return reply{gone: true}
	}
}

// why is what ended a stay, in words.
func (s *session) why() string {
	switch {
	case s.c.ended.How == wire.EndedNever:
		return s.c.ended.Why
	case s.err != nil && !errors.Is(s.err, io.EOF):
		return s.err.Error()
	case s.c.ended.Stderr != "":
		return lastLine(s.c.ended.Stderr)
	}
	return "the helper ended"
}
