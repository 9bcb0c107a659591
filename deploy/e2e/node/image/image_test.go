package image

import (
	"errors"
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	for reference, want := range map[string]string{
		"registry.k8s.io/e2e-test-images/agnhost:2.63.0": "agnhost",
		"agnhost":                       "agnhost",
		"localhost:5000/pause:3.10.2":   "pause",
		"busybox@sha256:0123":           "busybox",
		"docker.io/library/busybox:1.3": "busybox",
	} {
		if got, err := Find(reference); err != nil || got.Name != want {
			t.Errorf("Find(%q) = %q, %v, want %q", reference, got.Name, err, want)
		}
	}
	if _, err := Find("docker.io/library/redis:7"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown image: %v, want ErrUnknown", err)
	}
}

func TestArguments(t *testing.T) {
	i := Image{Entrypoint: []string{"/agnhost"}, Command: []string{"pause"}}
	for _, test := range []struct{ command, args, want []string }{
		{nil, nil, []string{"/agnhost", "pause"}},
		{nil, []string{"netexec"}, []string{"/agnhost", "netexec"}},
		{[]string{"sh"}, nil, []string{"sh"}},
		{[]string{"sh"}, []string{"-c", "true"}, []string{"sh", "-c", "true"}},
	} {
		if got := i.Arguments(test.command, test.args); !slices.Equal(got, test.want) {
			t.Errorf("Arguments(%q, %q) = %q, want %q", test.command, test.args, got, test.want)
		}
	}
}
