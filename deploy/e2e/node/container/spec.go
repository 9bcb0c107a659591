package container

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/moby/sys/capability"
)

// The file descriptors that every process here starts with, after the standard ones. Those of namespaces follow.
const (
	specFD  = 3
	errorFD = 4
	// FirstNamespaceFD is the first descriptor of a namespace to enter.
	FirstNamespaceFD = 5
)

// Command is a process.
type Command struct {
	Args []string
	Env  []string
	Dir  string
	// UID, GID and Groups are those of the process.
	UID, GID int
	Groups   []int
	// Drop are the capabilities that neither the process nor its descendants can have.
	Drop []capability.Cap
	// NoNewPrivileges is set if the process cannot get more rights from a program that it executes.
	NoNewPrivileges bool
	// Terminal is set if the standard streams are a terminal that the process controls.
	Terminal bool
	// Namespaces is the number of namespaces to enter first.
	Namespaces int
}

// Spec is a container.
type Spec struct {
	Command
	// Root is an empty directory on which the file system is mounted, and Scratch another for what is written. Other
	// containers may use the same, because the mounts are in a namespace of their own.
	Root, Scratch string
	// HostPID is set if the container sees the processes of the node.
	HostPID bool
	Mounts  []Mount
	// Files are written before the mounts: content by path.
	Files    map[string]string
	ReadOnly bool
}

// Mount is a file or directory of the node.
type Mount struct {
	Source, Target string
	ReadOnly       bool
	// Propagation is the mount flag for it, such as MS_SLAVE. Zero means private.
	Propagation uintptr
}

// read decodes what the parent wrote.
func read(v any) error {
	f := os.NewFile(specFD, "spec")
	defer f.Close()
	if err := json.NewDecoder(f).Decode(v); err != nil {
		return fmt.Errorf("read specification: %w", err)
	}
	return nil
}

// Report tells the parent about an error.
func Report(err error) { fmt.Fprint(os.NewFile(errorFD, "error"), err) }
