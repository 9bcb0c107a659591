package source

import (
	"strings"
	"testing"
)

const looseSlice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints: [{addresses: [10.0.0.1]}]
`

// TestManifestsOrphans warns about an object whose owner is in no manifest.
func TestManifestsOrphans(t *testing.T) {
	dir := t.TempDir()
	log, logger := newLog()
	m, _ := NewManifests(dir, logger)
	subscribe(t, m, newRecorder())
	scan := func() string {
		t.Helper()
		log.b.Reset()
		must(t, m.scan())
		return log.b.String()
	}
	write(t, dir, "slice.yaml", looseSlice)
	if got, want := scan(), `until its owner appears in a manifest" object="EndpointSlice default/web-1" file=slice.yaml line=1 owner="Service default/web"`; !strings.Contains(got, want) {
		t.Errorf("logged %s, want %s", got, want)
	}
	if got := scan(); got != "" {
		t.Errorf("logged again: %s", got)
	}
	// Together with its Service there is nothing to report.
	service := manifest("web", "10.96.0.1")
	write(t, dir, "slice.yaml", strings.Replace(looseSlice, "10.0.0.1", "10.0.0.2", 1)+"---\n"+service)
	if got := scan(); got != "" {
		t.Errorf("logged with the Service: %s", got)
	}
	write(t, dir, "slice.yaml", strings.Replace(looseSlice, ", labels: {kubernetes.io/service-name: web}", "", 1)+"---\n"+service)
	if got := scan(); !strings.Contains(got, "no label kubernetes.io/service-name") {
		t.Errorf("logged %s", got)
	}
}
