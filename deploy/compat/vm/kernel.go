package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kernel is a kernel for a Machine.
type Kernel struct {
	// Release is the kernel's release, such as 6.1.0-50-cloud-amd64.
	Release string
	// the compressed kernel
	Image string
	// the directory of uncompressed modules with an index
	Modules string
}

// kept are the modules for network tests; others would slow the machine's start.
var kept = []string{"net", "lib", "crypto", "arch/x86/crypto", "drivers/net/veth", "drivers/net/dummy", "drivers/net/tun", "drivers/net/nlmon", "drivers/net/ifb"}

// FindKernel finds the kernel in the unpacked package of Debian in dir. It keeps only needed modules,
// unpacked and with an index.
func FindKernel(dir string) (Kernel, error) {
	images, err := filepath.Glob(filepath.Join(dir, "boot/vmlinuz-*"))
	if err == nil && len(images) == 0 {
		images, err = filepath.Glob(filepath.Join(dir, "usr/lib/modules/*/vmlinuz"))
	}
	if err != nil || len(images) != 1 {
		return Kernel{}, fmt.Errorf("find the kernel in %s: %d images, want 1 (%w)", dir, len(images), err)
	}
	k := Kernel{Image: images[0], Release: strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")}
	if k.Release == "vmlinuz" {
		k.Release = filepath.Base(filepath.Dir(images[0]))
	}
	for _, root := range []string{dir, filepath.Join(dir, "usr")} {
		k.Modules = filepath.Join(root, "lib/modules", k.Release)
		if _, err := os.Stat(filepath.Join(k.Modules, "kernel")); err == nil {
			return k, k.prepare(root)
		}
	}
	return Kernel{}, fmt.Errorf("find the kernel in %s: no modules of %s", dir, k.Release)
}

// prepare writes the index last, which marks it as done.
func (k Kernel) prepare(root string) error {
	if _, err := os.Stat(filepath.Join(k.Modules, "modules.dep")); err == nil {
		return nil
	}
	err := filepath.WalkDir(filepath.Join(k.Modules, "kernel"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !needed(strings.TrimPrefix(path, filepath.Join(k.Modules, "kernel")+"/")) {
			return os.Remove(path)
		}
		if strings.HasSuffix(path, ".xz") {
			return run("xz", "-d", "-f", path)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("prepare the modules of %s: %w", k.Release, err)
	}
	// depmod adds lib/modules to the directory.
	return run("depmod", "-b", root, k.Release)
}

func needed(module string) bool {
	for _, prefix := range kept {
		if strings.HasPrefix(module, prefix) {
			return true
		}
	}
	return false
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
	return nil
}
