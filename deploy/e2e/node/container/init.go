package container

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	securejoin "github.com/cyphar/filepath-securejoin"
	"github.com/moby/sys/capability"
	"golang.org/x/sys/unix"
)

// Init makes the file system of a container and executes its program in place of this one. It returns
// only on failure. The process must be the first in the mount namespace.
func Init() error {
	runtime.LockOSThread()
	unix.CloseOnExec(errorFD)
	var s Spec
	if err := read(&s); err != nil {
		return err
	}
	if err := enter(s.Namespaces); err != nil {
		return err
	}
	if err := s.makeRoot(); err != nil {
		return fmt.Errorf("make file system: %w", err)
	}
	if err := pivot(s.Root); err != nil {
		return fmt.Errorf("change root: %w", err)
	}
	return s.execute()
}

func enter(n int) error {
	for fd := FirstNamespaceFD; fd < FirstNamespaceFD+n; fd++ {
		if err := unix.Setns(fd, 0); err != nil {
			return fmt.Errorf("enter namespace %d: %w", fd-FirstNamespaceFD, err)
		}
		unix.Close(fd)
	}
	return nil
}

func (s *Spec) makeRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separate mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", s.Scratch, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount scratch: %w", err)
	}
	upper, work := filepath.Join(s.Scratch, "upper"), filepath.Join(s.Scratch, "work")
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("overlay", s.Root, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	for _, m := range []struct {
		kind, at string
		flags    uintptr
		data     string
	}{
		{"proc", "proc", 0, ""},
		{"sysfs", "sys", 0, ""},
		{"tmpfs", "dev", unix.MS_NOSUID, "mode=755"},
		{"tmpfs", "tmp", 0, "mode=1777"},
		{"tmpfs", "run", 0, "mode=755"},
	} {
		if err := unix.Mount(m.kind, filepath.Join(s.Root, m.at), m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if err := s.makeDevices(); err != nil {
		return err
	}
	for path, content := range s.Files {
		if err := s.write(path, content); err != nil {
			return err
		}
	}
	for _, m := range s.ordered() {
		if err := s.bind(m); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.Source, m.Target, err)
		}
	}
	return nil
}

// ordered returns parents before children. The kubelet has the order of the pod.
func (s *Spec) ordered() []Mount {
	depth := func(m Mount) int { return strings.Count(filepath.Clean(m.Target), "/") }
	mounts := slices.Clone(s.Mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int { return cmp.Compare(depth(a), depth(b)) })
	return mounts
}

func (s *Spec) makeDevices() error {
	dev := filepath.Join(s.Root, "dev")
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := s.bind(Mount{Source: "/dev/" + name, Target: "/dev/" + name}); err != nil {
			return fmt.Errorf("make device %s: %w", name, err)
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"pts", "shm"} {
		if err := os.Mkdir(filepath.Join(dev, name), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		unix.Mount("devpts", filepath.Join(dev, "pts"), "devpts", 0, "newinstance,ptmxmode=0666,mode=0620"),
		unix.Mount("tmpfs", filepath.Join(dev, "shm"), "tmpfs", 0, "mode=1777"))
}

// write replaces a file, and does not follow the machine's link.
func (s *Spec) write(path, content string) error {
	path = filepath.Join(s.Root, path)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func (s *Spec) bind(m Mount) error {
	target, err := securejoin.SecureJoin(s.Root, m.Target)
	if err != nil {
		return err
	}
	info, err := os.Stat(m.Source)
	if errors.Is(err, os.ErrNotExist) {
		// Like other runtimes, make a missing directory of the node.
		if err = os.MkdirAll(m.Source, 0o755); err == nil {
			info, err = os.Stat(m.Source)
		}
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var f *os.File
		if f, err = os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
			err = f.Close()
		} else if _, there := os.Lstat(target); there == nil {
			err = nil // a device or socket cannot always be opened
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if m.Propagation != 0 {
		if err := unix.Mount("", target, "", m.Propagation|unix.MS_REC, ""); err != nil {
			return err
		}
	}
	if !m.ReadOnly {
		return nil
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Mount("", ".", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}

func (s *Spec) execute() error {
	if s.ReadOnly {
		if err := unix.Mount("", "/", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("make root read-only: %w", err)
		}
	}
	if s.Dir != "" {
		if err := os.MkdirAll(s.Dir, 0o755); err != nil {
			return err
		}
		if err := os.Chdir(s.Dir); err != nil {
			return err
		}
	}
	program, err := s.lookPath()
	if err != nil {
		return err
	}
	if s.Terminal {
		if err := unix.IoctlSetInt(int(os.Stdin.Fd()), unix.TIOCSCTTY, 0); err != nil {
			return fmt.Errorf("control terminal: %w", err)
		}
	}
	if err := s.restrict(); err != nil {
		return err
	}
	if err := s.become(); err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", program, syscall.Exec(program, s.Args, s.Env))
}

func (c *Command) lookPath() (string, error) {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, e := range c.Env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	if err := os.Setenv("PATH", path); err != nil {
		return "", err
	}
	if len(c.Args) == 0 {
		return "", errors.New("no command")
	}
	return exec.LookPath(c.Args[0])
}

// restrict affects executed programs. The thread keeps capabilities that it needs, for example to
// change its user.
func (c *Command) restrict() error {
	if err := capability.DropBound(c.Drop...); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if !c.NoNewPrivileges {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid new privileges: %w", err)
	}
	return nil
}

func (c *Command) become() error {
	if c.UID == 0 && c.GID == 0 && len(c.Groups) == 0 {
		return nil
	}
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		// So that the user may open /dev/stdout. Only pipes and the container's terminal change.
		if info, err := f.Stat(); err != nil || info.Mode().Type() != os.ModeNamedPipe && !c.Terminal {
			continue
		}
		if err := f.Chown(c.UID, -1); err != nil {
			return fmt.Errorf("give %s to the user: %w", f.Name(), err)
		}
	}
	if err := syscall.Setgroups(c.Groups); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setgid(c.GID); err != nil {
		return fmt.Errorf("set group %d: %w", c.GID, err)
	}
	if err := syscall.Setuid(c.UID); err != nil {
		return fmt.Errorf("set user %d: %w", c.UID, err)
	}
	// A change of the user clears the signal that ends the container with the runtime.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("set death signal: %w", err)
	}
	return nil
}
