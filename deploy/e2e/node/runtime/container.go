package runtime

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moby/sys/capability"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	inside "github.com/weft-proxy/weft/deploy/e2e/node/container"
	"github.com/weft-proxy/weft/deploy/e2e/node/image"
)

type container struct {
	id      string
	sandbox *sandbox
	config  *cri.ContainerConfig
	image   image.Image
	created time.Time
	log     *logFile
	// stdin and the runtime's end of the terminal may be nil.
	stdin, terminal *os.File
	drop            []capability.Cap

	mu                sync.Mutex
	process           *exec.Cmd
	started, finished time.Time
	exit              int32
	message           string
	ended             chan struct{}
}

// CreateContainer implements CRI.
func (r *Runtime) CreateContainer(_ context.Context, req *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	s, err := r.findSandbox(req.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	config := req.GetConfig()
	i, err := image.Find(config.GetImage().GetImage())
	if err != nil {
		// The kubelet creates containers with the ID that PullImage returned.
		if i, err = image.Find(config.GetImage().GetUserSpecifiedImage()); err != nil {
			return nil, status.Error(codes.NotFound, err.Error())
		}
	}
	c := &container{id: newID(), sandbox: s, config: config, image: i, created: time.Now(), ended: make(chan struct{})}
	if c.drop, err = droppedCapabilities(config.GetLinux().GetSecurityContext()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	path := ""
	if dir := req.GetSandboxConfig().GetLogDirectory(); dir != "" && config.GetLogPath() != "" {
		path = filepath.Join(dir, config.GetLogPath())
	}
	if c.log, err = newLog(path); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.containers[c.id] = c
	return &cri.CreateContainerResponse{ContainerId: c.id}, nil
}

func (c *container) command(args []string) inside.Command {
	security := c.config.GetLinux().GetSecurityContext()
	command := inside.Command{
		Args: args, Dir: c.config.GetWorkingDir(),
		UID: int(security.GetRunAsUser().GetValue()), GID: int(security.GetRunAsGroup().GetValue()),
		Drop: c.drop, NoNewPrivileges: security.GetNoNewPrivs(),
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"HOME=/root", "HOSTNAME=" + c.sandbox.config.GetHostname(),
		},
	}
	for _, g := range security.GetSupplementalGroups() {
		command.Groups = append(command.Groups, int(g))
	}
	for _, e := range c.config.GetEnvs() {
		command.Env = append(command.Env, e.GetKey()+"="+string(e.GetValue()))
	}
	return command
}

func (r *Runtime) specification(c *container) inside.Spec {
	pod := c.sandbox.config
	security := c.config.GetLinux().GetSecurityContext()
	spec := inside.Spec{
		Command: c.command(c.image.Arguments(c.config.GetCommand(), c.config.GetArgs())),
		Root:    r.root(), Scratch: r.scratch(),
		HostPID:  security.GetNamespaceOptions().GetPid() == cri.NamespaceMode_NODE,
		ReadOnly: security.GetReadonlyRootfs(),
		Files: map[string]string{
			"/etc/hostname": pod.GetHostname() + "\n", "/etc/resolv.conf": resolvConf(pod.GetDnsConfig()),
			// The wget of images tries once, that of the machine 20 times.
			"/etc/wgetrc": "tries = 1\n",
		},
	}
	spec.Terminal = c.config.GetTty()
	if path := c.image.Certificate; path != "" {
		spec.Files[path+".crt"], spec.Files[path+".key"] = string(r.certificate), string(r.key)
	}
	for path, name := range c.image.Programs {
		// A test builds only the programs that its pods run.
		if _, err := os.Stat(r.program(name)); err == nil {
			spec.Mounts = append(spec.Mounts, inside.Mount{Source: r.program(name), Target: path, ReadOnly: true})
		}
	}
	for _, m := range c.config.GetMounts() {
		mount := inside.Mount{Source: m.GetHostPath(), Target: m.GetContainerPath(), ReadOnly: m.GetReadonly()}
		if m.GetPropagation() != cri.MountPropagation_PROPAGATION_PRIVATE {
			mount.Propagation = unix.MS_SLAVE
		}
		spec.Mounts = append(spec.Mounts, mount)
	}
	return spec
}

// StartContainer implements CRI.
func (r *Runtime) StartContainer(_ context.Context, req *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	c, err := r.findContainer(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	spec := r.specification(c)
	namespaces := c.sandbox.namespaces.files()
	spec.Namespaces = len(namespaces)
	l := launch{program: r.program("container"), verb: "init", spec: &spec, namespaces: namespaces, flags: unix.CLONE_NEWNS}
	if !spec.HostPID {
		l.flags |= unix.CLONE_NEWPID
	}
	outputs, err := c.streams(&l)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	cmd, err := r.starter.start(l)
	outputs.started()
	if err != nil {
		outputs.wait()
		c.fail(err)
		return nil, status.Errorf(codes.Internal, "start container: %v", err)
	}
	c.mu.Lock()
	c.process, c.started = cmd, time.Now()
	c.mu.Unlock()
	go c.follow(cmd, outputs)
	return &cri.StartContainerResponse{}, nil
}

type outputs struct {
	ours    sync.WaitGroup
	readers []*os.File
	theirs  []*os.File
}

func (c *container) streams(l *launch) (*outputs, error) {
	if c.config.GetTty() {
		return c.terminalStreams(l)
	}
	o := &outputs{}
	for _, s := range []struct {
		name string
		to   *io.Writer
	}{{"stdout", &l.stdout}, {"stderr", &l.stderr}} {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		*s.to = write
		o.readers = append(o.readers, read)
		o.theirs = append(o.theirs, write)
		o.ours.Go(func() { c.log.copy(s.name, read) })
	}
	if !c.config.GetStdin() {
		return o, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.stdin, c.stdin = read, write
	o.theirs = append(o.theirs, read)
	return o, nil
}

func (c *container) terminalStreams(l *launch) (*outputs, error) {
	ours, theirs, err := openTerminal()
	if err != nil {
		return nil, err
	}
	l.stdin, l.stdout, l.stderr = theirs, theirs, theirs
	c.terminal = ours
	if c.config.GetStdin() {
		c.stdin = ours
	}
	o := &outputs{readers: []*os.File{ours}, theirs: []*os.File{theirs}}
	o.ours.Go(func() { c.log.copy("stdout", ours) })
	return o, nil
}

func (o *outputs) started() { closeAll(o.theirs) }

// wait returns when all output is in the log. A process outside of the container's PID namespace can
// keep a pipe open.
func (o *outputs) wait() {
	done := make(chan struct{})
	go func() {
		o.ours.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
	closeAll(o.readers)
}

func (c *container) follow(cmd *exec.Cmd, o *outputs) {
	_ = cmd.Wait() // the state has the result
	o.wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished = time.Now()
	c.exit = int32(cmd.ProcessState.ExitCode())
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		c.exit = 128 + int32(ws.Signal())
	}
	c.log.close()
	close(c.ended)
}

func (c *container) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started, c.finished = time.Now(), time.Now()
	c.exit, c.message = 128, err.Error()
	c.log.close()
	close(c.ended)
}

func (c *container) running() (*exec.Cmd, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil || !c.finished.IsZero() {
		return nil, errEnded
	}
	return c.process, nil
}

// StopContainer implements CRI. After the grace period it kills all processes.
func (r *Runtime) StopContainer(ctx context.Context, req *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	c, err := r.findContainer(req.GetContainerId())
	if err != nil {
		return &cri.StopContainerResponse{}, nil
	}
	cmd, err := c.running()
	if err != nil {
		return &cri.StopContainerResponse{}, nil
	}
	if req.GetTimeout() > 0 {
		if err := cmd.Process.Signal(c.stopSignal()); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return nil, status.Error(codes.Internal, err.Error())
		}
		select {
		case <-c.ended:
			return &cri.StopContainerResponse{}, nil
		case <-time.After(time.Duration(req.GetTimeout()) * time.Second):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	c.kill()
	return &cri.StopContainerResponse{}, nil
}

func (c *container) stopSignal() syscall.Signal {
	name := c.config.GetStopSignal()
	if name == cri.Signal_SIGNAL_RUNTIME_DEFAULT {
		return syscall.SIGTERM
	}
	return cmp.Or(unix.SignalNum(strings.TrimPrefix(name.String(), "SIGNAL_")), syscall.SIGTERM)
}

// kill returns after all processes of the container have ended.
func (c *container) kill() {
	cmd, err := c.running()
	if err != nil {
		return
	}
	_ = cmd.Process.Kill() // an error means that it has ended
	<-c.ended
}

// RemoveContainer implements CRI.
func (r *Runtime) RemoveContainer(_ context.Context, req *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	if c, err := r.findContainer(req.GetContainerId()); err == nil {
		c.kill()
		r.remove(c)
	}
	return &cri.RemoveContainerResponse{}, nil
}

// The log stays, because the kubelet owns it.
func (r *Runtime) remove(c *container) {
	c.log.close()
	if c.stdin != nil {
		c.stdin.Close()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.containers, c.id)
}

// ReopenContainerLog implements CRI.
func (r *Runtime) ReopenContainerLog(_ context.Context, req *cri.ReopenContainerLogRequest) (*cri.ReopenContainerLogResponse, error) {
	c, err := r.findContainer(req.GetContainerId())
	if err != nil {
		return nil, err
	}
	if err := c.log.reopen(); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &cri.ReopenContainerLogResponse{}, nil
}
