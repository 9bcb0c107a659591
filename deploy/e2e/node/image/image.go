package image

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// ErrUnknown means that the table does not have an image.
var ErrUnknown = errors.New("image is not in the table of package deploy/e2e/node/image")

// Image is the files and the command of a container, in addition to the machine's files.
type Image struct {
	// the last part of the repository's name
	Name string
	// Programs maps paths in the container to names of test programs.
	Programs map[string]string
	// Certificate is the path of a localhost certificate and key, without .crt and .key. It may be
	// empty.
	Certificate string
	// A pod may replace both.
	Entrypoint, Command []string
}

func table() []Image {
	agnhost := map[string]string{"/agnhost": "agnhost"}
	return []Image{
		{
			Name: "agnhost", Programs: map[string]string{"/agnhost": "agnhost", "/agnhost-2": "agnhost", "/coredns": "coredns"},
			Certificate: "/localhost", Entrypoint: []string{"/agnhost"}, Command: []string{"pause"},
		},
		{Name: "pause", Programs: agnhost, Entrypoint: []string{"/agnhost", "pause"}},
		// The machine's shell and tools.
		{Name: "busybox", Command: []string{"sh"}},
		{Name: "distroless-iptables", Command: []string{"sh"}},
		{Name: "glibc-dns-testing", Command: []string{"sleep", "infinity"}},
		// The specs only need a listener on port 80.
		{Name: "nginx", Programs: agnhost, Command: []string{"/agnhost", "netexec", "--http-port=80", "--udp-port=-1"}},
		{
			Name: "regression-issue-74839", Programs: map[string]string{"/regression-issue-74839": "regression-issue-74839"},
			Entrypoint: []string{"/regression-issue-74839"},
		},
		{Name: "weft", Programs: map[string]string{"/weft": "weft"}, Entrypoint: []string{"/weft"}},
		{Name: "weft-earlier", Programs: map[string]string{"/weft": "weft-earlier"}, Entrypoint: []string{"/weft"}},
		{Name: "kube-proxy", Programs: map[string]string{"/usr/local/bin/kube-proxy": "kube-proxy"}},
		{Name: "coredns", Programs: map[string]string{"/coredns": "coredns"}, Entrypoint: []string{"/coredns"}},
	}
}

// All returns the images of the table.
func All() []Image { return table() }

// Find returns the image of a reference. It ignores registry, tag and digest.
func Find(reference string) (Image, error) {
	name, _, _ := strings.Cut(reference, "@")
	name, _, _ = strings.Cut(path.Base(name), ":")
	for _, i := range table() {
		if i.Name == name {
			return i, nil
		}
	}
	return Image{}, fmt.Errorf("find image %q: %w", reference, ErrUnknown)
}

// Arguments returns the command line for a pod's command and arguments, which may be empty.
func (i Image) Arguments(command, args []string) []string {
	if len(command) > 0 {
		return slices.Concat(command, args)
	}
	if len(args) == 0 {
		args = i.Command
	}
	return slices.Concat(i.Entrypoint, args)
}
