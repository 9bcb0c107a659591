package runtime

import (
	"fmt"
	"strings"

	"github.com/moby/sys/capability"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var defaultCapabilities = []capability.Cap{
	capability.CAP_CHOWN, capability.CAP_DAC_OVERRIDE, capability.CAP_FSETID, capability.CAP_FOWNER, capability.CAP_MKNOD,
	capability.CAP_NET_RAW, capability.CAP_SETGID, capability.CAP_SETUID, capability.CAP_SETFCAP, capability.CAP_SETPCAP,
	capability.CAP_NET_BIND_SERVICE, capability.CAP_SYS_CHROOT, capability.CAP_KILL, capability.CAP_AUDIT_WRITE,
}

const everyCapability = "ALL"

// droppedCapabilities applies ALL before single capabilities, and additions before drops, as other
// runtimes do.
func droppedCapabilities(security *cri.LinuxContainerSecurityContext) ([]capability.Cap, error) {
	if security.GetPrivileged() {
		return nil, nil
	}
	known, err := capability.ListSupported()
	if err != nil {
		return nil, fmt.Errorf("list capabilities: %w", err)
	}
	byName, keep := map[string]capability.Cap{}, map[capability.Cap]bool{}
	for _, c := range known {
		byName[strings.ToUpper(c.String())] = c
	}
	for _, c := range defaultCapabilities {
		keep[c] = true
	}
	changes := security.GetCapabilities()
	steps := []struct {
		names []string
		kept  bool
	}{{changes.GetAddCapabilities(), true}, {changes.GetDropCapabilities(), false}}
	for _, step := range steps {
		for _, name := range step.names {
			if name == everyCapability {
				for _, c := range known {
					keep[c] = step.kept
				}
			}
		}
	}
	for _, step := range steps {
		for _, name := range step.names {
			c, ok := byName[strings.TrimPrefix(strings.ToUpper(name), "CAP_")]
			if ok {
				keep[c] = step.kept
			} else if name != everyCapability {
				return nil, fmt.Errorf("unknown capability %q", name)
			}
		}
	}
	var drop []capability.Cap
	for _, c := range known {
		if !keep[c] {
			drop = append(drop, c)
		}
	}
	return drop, nil
}
