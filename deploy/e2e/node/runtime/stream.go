package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

type execution struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	// the command gets its own terminal
	terminal bool
}

// The end of ctx kills the command.
func (r *Runtime) execute(ctx context.Context, c *container, e execution) (int32, error) {
	process, err := c.running()
	if err != nil {
		return 0, err
	}
	// The mount namespace is last, because it hides files of the node.
	namespaces, err := openNamespaces(process.Process.Pid, "uts", "ipc", "net", "pid", "mnt")
	if err != nil {
		return 0, err
	}
	defer closeAll(namespaces)
	command := c.command(e.args)
	command.Terminal = e.terminal
	command.Namespaces = len(namespaces)
	stdin, closeStdin, err := input(e.stdin)
	if err != nil {
		return 0, err
	}
	defer closeStdin()
	cmd, err := r.starter.start(launch{
		program: r.program("container"), verb: "exec", spec: &command, namespaces: namespaces, stdin: stdin, stdout: e.stdout, stderr: e.stderr,
	})
	if err != nil {
		return 0, fmt.Errorf("execute %q: %w", e.args, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	// Leftover processes of the command must not delay the caller.
	cmd.WaitDelay = r.lingering
	err = cmd.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return 0, err
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int32(ws.Signal()), nil
	}
	return int32(cmd.ProcessState.ExitCode()), nil
}

// exec.Cmd would wait for the end of the reader, but a client ends its input after the command.
func input(from io.Reader) (io.Reader, func(), error) {
	if _, ok := from.(*os.File); ok || from == nil {
		return from, func() {}, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	go func() {
		_, _ = io.Copy(write, from) // fails when the command has ended
		write.Close()
	}()
	return read, func() { closeAll([]*os.File{read, write}) }, nil
}

// ExecSync implements CRI.
func (r *Runtime) ExecSync(ctx context.Context, req *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	c, err := r.findContainer(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	if req.GetTimeout() > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(req.GetTimeout())*time.Second)
		defer cancel()
	}
	var stdout, stderr bytes.Buffer
	exit, err := r.execute(ctx, c, execution{args: req.GetCmd(), stdout: &stdout, stderr: &stderr})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, status.Errorf(codes.DeadlineExceeded, "command %q timed out", req.GetCmd())
	case err != nil:
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &cri.ExecSyncResponse{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), ExitCode: exit}, nil
}

// Exec implements CRI.
func (r *Runtime) Exec(_ context.Context, req *cri.ExecRequest) (*cri.ExecResponse, error) {
	return r.stream.GetExec(req)
}

// Attach implements CRI.
func (r *Runtime) Attach(_ context.Context, req *cri.AttachRequest) (*cri.AttachResponse, error) {
	return r.stream.GetAttach(req)
}

// PortForward implements CRI.
func (r *Runtime) PortForward(_ context.Context, req *cri.PortForwardRequest) (*cri.PortForwardResponse, error) {
	return r.stream.GetPortForward(req)
}

type streamer Runtime

func (s *streamer) Exec(ctx context.Context, id string, args []string, in io.Reader, out, errs io.WriteCloser, tty bool, sizes <-chan remotecommand.TerminalSize) error {
	r := (*Runtime)(s)
	c, err := r.findContainer(id)
	if err != nil {
		return err
	}
	var exit int32
	if tty {
		exit, err = r.executeOnTerminal(ctx, c, execution{args: args, stdin: in, stdout: out}, sizes)
	} else {
		e := execution{args: args, stdin: in}
		// A nil interface makes the command's output /dev/null.
		if out != nil {
			e.stdout = out
		}
		if errs != nil {
			e.stderr = errs
		}
		exit, err = r.execute(ctx, c, e)
	}
	if err != nil {
		return err
	}
	if exit != 0 {
		return &utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", exit), Code: int(exit)}
	}
	return nil
}

// Attach copies the streams until the container or the client ends.
func (s *streamer) Attach(ctx context.Context, id string, in io.Reader, out, errs io.WriteCloser, tty bool, sizes <-chan remotecommand.TerminalSize) error {
	c, err := (*Runtime)(s).findContainer(id)
	if err != nil {
		return err
	}
	if _, err := c.running(); err != nil {
		return err
	}
	a := &attachment{}
	if out != nil {
		a.stdout = out
	}
	if errs != nil {
		a.stderr = errs
	}
	c.log.attach(a)
	defer c.log.detach(a)
	if tty && c.config.GetTty() {
		go resize(c.terminal, sizes)
	}
	if in != nil && c.stdin != nil {
		go func() {
			_, _ = io.Copy(c.stdin, in)
			if c.config.GetStdinOnce() && !c.config.GetTty() { // output comes from a terminal too
				c.stdin.Close()
			}
		}()
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
	}
	return nil
}

// PortForward connects to a port on the loopback of a pod.
func (s *streamer) PortForward(ctx context.Context, id string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	sandbox, err := (*Runtime)(s).findSandbox(id)
	if err != nil {
		return err
	}
	var conn net.Conn
	err = sandbox.namespaces.inNetwork(func() error {
		for _, loopback := range []string{"127.0.0.1", "::1"} {
			// A literal address keeps the dialer on this thread.
			if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(int(port)))); err == nil {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("forward port %d: %w", port, err)
	}
	defer conn.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.(*net.TCPConn).CloseWrite() // the other direction may go on
	})
	_, _ = io.Copy(stream, conn)
	stream.Close()
	both.Wait()
	return nil
}
