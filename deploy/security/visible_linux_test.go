package security

import (
	"errors"
	"flag"

	"github.com/opencontainers/runtime-spec/specs-go"
)

var runtimeFlag = flag.String("runtime", "runc", "OCI runtime that starts the containers, such as crun or a path")

// visible makes a filter refuse with an error that the kernel itself does not return.
func visible(p *specs.LinuxSeccomp) error {
	if p == nil || p.DefaultAction != specs.ActErrno {
		return errors.New("the filter does not refuse what it does not name")
	}
	e := uint(refusal)
	p.DefaultErrnoRet = &e
	return nil
}
