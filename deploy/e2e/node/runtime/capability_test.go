package runtime

import (
	"slices"
	"testing"

	"github.com/moby/sys/capability"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestDroppedCapabilities(t *testing.T) {
	supported, err := capability.ListSupported()
	if err != nil {
		t.Fatal(err)
	}
	with := func(more ...capability.Cap) []capability.Cap {
		return append(slices.Clone(defaultCapabilities), more...)
	}
	for name, test := range map[string]struct {
		security *cri.LinuxContainerSecurityContext
		kept     []capability.Cap
	}{
		"nothing":    {nil, with()},
		"privileged": {&cri.LinuxContainerSecurityContext{Privileged: true}, supported},
		"add":        {changes([]string{"NET_ADMIN"}, nil), with(capability.CAP_NET_ADMIN)},
		"prefix":     {changes([]string{"CAP_NET_ADMIN"}, nil), with(capability.CAP_NET_ADMIN)},
		"add all":    {changes([]string{"ALL"}, nil), supported},
		"drop":       {changes([]string{"ALL"}, []string{"KILL"}), without(supported, capability.CAP_KILL)},
		"drop all":   {changes([]string{"KILL"}, []string{"ALL"}), []capability.Cap{capability.CAP_KILL}},
		"drop both":  {changes([]string{"KILL"}, []string{"KILL"}), without(defaultCapabilities, capability.CAP_KILL)},
	} {
		drop, err := droppedCapabilities(test.security)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, c := range supported {
			if got, want := !slices.Contains(drop, c), slices.Contains(test.kept, c); got != want {
				t.Errorf("%s: container keeps %s: %t, want %t", name, c, got, want)
			}
		}
	}
	if _, err := droppedCapabilities(changes(nil, []string{"FLY"})); err == nil {
		t.Error("no error for a capability that does not exist")
	}
}

func changes(add, drop []string) *cri.LinuxContainerSecurityContext {
	return &cri.LinuxContainerSecurityContext{Capabilities: &cri.Capability{AddCapabilities: add, DropCapabilities: drop}}
}

func without(all []capability.Cap, c capability.Cap) []capability.Cap {
	return slices.DeleteFunc(slices.Clone(all), func(o capability.Cap) bool { return o == c })
}

// The container and commands in it lack the capabilities.
func TestCapabilitiesOfContainer(t *testing.T) {
	_, c := serve(t)
	pod := c.pod(t, &cri.PodSandboxConfig{Hostname: "web"})
	const script = "sed -n 's/^CapEff:.//p; s/^NoNewPrivs:.//p' /proc/self/status"
	id := c.configure(t, pod, "exec 3>/tmp/done; "+script+" >&3; exec sleep 1000", func(config *cri.ContainerConfig) {
		security := changes([]string{"NET_BIND_SERVICE"}, []string{"ALL"})
		security.NoNewPrivs = true
		config.Linux = &cri.LinuxContainerConfig{SecurityContext: security}
	})
	c.begin(t, id)
	const want = "0000000000000400\n1\n"
	eventually(t, "the container has only NET_BIND_SERVICE", func() bool { return c.output(t, id, "cat /tmp/done 2>/dev/null || true") == want })
	if got := c.output(t, id, script); got != want {
		t.Errorf("a command has capabilities %q, want %q", got, want)
	}
}
