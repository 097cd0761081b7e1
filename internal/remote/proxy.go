package remote

import (
	"io"
	"net"
	"os/exec"
	"sync"
	"time"
)

// proxyConn is the standard input and output of a ProxyCommand as a connection.
type proxyConn struct {
	io.Reader
	io.WriteCloser
	cmd  *exec.Cmd
	errs *bounded
	addr proxyAddr
	once sync.Once
	done chan struct{} // closed when the command has ended and its standard error was read
}

type proxyAddr string

func (a proxyAddr) Network() string { return "proxy" }
func (a proxyAddr) String() string  { return string(a) }

// startProxy runs a ProxyCommand, as OpenSSH does through the shell.
func startProxy(command string, t settings) (net.Conn, error) {
	cmd := exec.Command("/bin/sh", "-c", "exec "+command)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	errs := &bounded{limit: 4 << 10}
	cmd.Stderr = errs
	cmd.WaitDelay = abandon
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &proxyConn{Reader: out, WriteCloser: in, cmd: cmd, errs: errs, addr: proxyAddr(t.hostPort()), done: make(chan struct{})}, nil
}

// said ends the command and gives the last line of its standard error.
func (p *proxyConn) said() string {
	_ = p.Close()
	select {
	case <-p.done:
	case <-time.After(abandon):
	}
	return p.errs.last()
}

// proxyGrace is what a ProxyCommand is given to end by itself, and to say why it failed.
const proxyGrace = 200 * time.Millisecond

// Close ends the command.
func (p *proxyConn) Close() error {
	p.once.Do(func() {
		_ = p.WriteCloser.Close()
		kill := time.AfterFunc(proxyGrace, func() { _ = p.cmd.Process.Kill() })
		go func() {
			_ = p.cmd.Wait()
			kill.Stop()
			close(p.done)
		}()
	})
	return nil
}

func (p *proxyConn) LocalAddr() net.Addr              { return p.addr }
func (p *proxyConn) RemoteAddr() net.Addr             { return p.addr }
func (p *proxyConn) SetDeadline(time.Time) error      { return nil } // deadlines close the connection instead
func (p *proxyConn) SetReadDeadline(time.Time) error  { return nil }
func (p *proxyConn) SetWriteDeadline(time.Time) error { return nil }
