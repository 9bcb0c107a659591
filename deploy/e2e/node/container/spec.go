package container

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/moby/sys/capability"
)

// In this order, between the standard descriptors and the namespaces.
const (
	specFD  = 3
	errorFD = 4
	// FirstNamespaceFD is the first descriptor of a namespace to enter.
	FirstNamespaceFD = 5
)

// Command is a process.
type Command struct {
	Args     []string
	Env      []string
	Dir      string
	UID, GID int
	Groups   []int
	// Drop lists capabilities that the process and its descendants cannot have.
	Drop            []capability.Cap
	NoNewPrivileges bool
	Terminal        bool
	// Namespaces is the number of namespaces to enter first.
	Namespaces int
}

// Spec is a container.
type Spec struct {
	Command
	// Root is an empty directory for the file system, and Scratch another for the writable layer.
	// Containers may share them, in different mount namespaces.
	Root, Scratch string
	// HostPID shows the node's processes to the container.
	HostPID bool
	Mounts  []Mount
	// content by path, written before the mounts
	Files    map[string]string
	ReadOnly bool
}

// Mount is a file or directory of the node.
type Mount struct {
	Source, Target string
	ReadOnly       bool
	// Propagation is a mount flag, such as MS_SLAVE. Zero means private.
	Propagation uintptr
}

func read(v any) error {
	f := os.NewFile(specFD, "spec")
	defer f.Close()
	if err := json.NewDecoder(f).Decode(v); err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	return nil
}

// Report sends an error to the parent.
func Report(err error) { fmt.Fprint(os.NewFile(errorFD, "error"), err) }
