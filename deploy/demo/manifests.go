package demo

import (
	"embed"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weft-proxy/weft/cmd/weft/cli"
)

// as in manifests/services.yaml
var webVIP = at("10.96.0.10", "fd00:96::10")

var (
	webTCP = netip.AddrPortFrom(webVIP.V4, webPort)
	webUDP = netip.AddrPortFrom(webVIP.V4, dnsPort)
)

// The ports in manifests/services.yaml.
const (
	webPort     = 80
	dnsPort     = 53
	webNodePort = 30080
	dnsNodePort = 30053
)

//go:embed manifests
var embedded embed.FS

// webManifest has the endpoints of web, one per line.
const webManifest = "manifests/web.yaml"

// manifests are the files that weft reads.
type manifests struct {
	dir string
	// the removed endpoint of web, or ""
	removed string
}

func (m *manifests) setWeb(removed string) error {
	text, err := embedded.ReadFile(webManifest)
	if err != nil {
		return err
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if removed == "" || !strings.Contains(line, "name: "+removed+"}") {
			kept.WriteString(line)
		}
	}
	m.removed = removed
	return m.write(filepath.Base(webManifest), kept.String())
}

func (m *manifests) write(name, text string) error {
	// weft ignores files with a leading dot, so that it never reads a partial file.
	path := filepath.Join(m.dir, filepath.Dir(webManifest), name)
	temporary := filepath.Join(filepath.Dir(path), "."+name)
	if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// web returns the names of the servers that are endpoints.
func (m *manifests) web(servers []*pod) []string {
	names := cli.Map(servers, func(p *pod) string { return p.Name })
	return slices.DeleteFunc(names, func(name string) bool { return name == m.removed })
}
