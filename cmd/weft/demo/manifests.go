package demo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/template"
)

// The Services of the demo. web has three endpoints, is reached over TCP and
// UDP and at NodePorts; solo has one; lonely has none.
var (
	webVIP    = at("10.96.0.10", "fd00:96::10")
	soloVIP   = at("10.96.0.20", "fd00:96::20")
	lonelyVIP = at("10.96.0.30", "fd00:96::30")
)

// The ports of the Services.
const (
	webPort     = 80
	dnsPort     = 53
	webNodePort = 30080
	dnsNodePort = 30053
)

// manifests is what is written to the directory that weft watches.
type manifests struct {
	dir     string
	Nodes   []*node
	Web     []*pod
	Solo    *pod
	Dual    bool
	VIP     map[string]place
	Numbers map[string]int
}

func newManifests(dir string, c *cluster) *manifests {
	return &manifests{
		dir: dir, Nodes: c.nodes, Web: c.servers(), Solo: c.pod("web-1"), Dual: hasIPv6(),
		VIP: map[string]place{"web": webVIP, "solo": soloVIP, "lonely": lonelyVIP},
		Numbers: map[string]int{
			"web": webPort, "dns": dnsPort, "webNode": webNodePort, "dnsNode": dnsNodePort,
			"tcp": serverTCP, "udp": serverUDP,
		},
	}
}

// Name and Node are what the templates show of pods and nodes, beside their
// addresses.
func (p *pod) Name() string  { return p.name }
func (p *pod) Node() string  { return p.node.name }
func (n *node) Name() string { return n.name }

// writeAll writes every manifest.
func (m *manifests) writeAll() error {
	for _, f := range []struct{ name, text string }{
		{"nodes.yaml", nodesYAML},
		{"services.yaml", servicesYAML},
		{"solo-endpoints.yaml", soloYAML},
		{"web-endpoints.yaml", webYAML},
	} {
		if err := m.write(f.name, f.text); err != nil {
			return err
		}
	}
	return nil
}

// removeFromWeb takes an endpoint out of web's slices.
func (m *manifests) removeFromWeb(name string) error {
	m.Web = slices.DeleteFunc(slices.Clone(m.Web), func(p *pod) bool { return p.name == name })
	return m.write("web-endpoints.yaml", webYAML)
}

// write replaces a file by renaming, so that no reader sees a part of it.
func (m *manifests) write(name, text string) error {
	tmpl, err := template.New(name).Parse(text)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	var b bytes.Buffer
	if err := tmpl.Execute(&b, m); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	// The dot keeps watchers from reading the file under its first name.
	temporary := filepath.Join(m.dir, "."+name)
	if err := os.WriteFile(temporary, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := os.Rename(temporary, filepath.Join(m.dir, name)); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

const nodesYAML = `{{range .Nodes}}---
apiVersion: v1
kind: Node
metadata:
  name: {{.Name}}
status:
  addresses:
  - {type: InternalIP, address: "{{.V4}}"}
{{- if $.Dual}}
  - {type: InternalIP, address: "{{.V6}}"}
{{- end}}
{{end}}`

const servicesYAML = `{{range $name, $vip := .VIP}}---
apiVersion: v1
kind: Service
metadata:
  name: {{$name}}
  namespace: demo
spec:
  type: {{if eq $name "web"}}NodePort{{else}}ClusterIP{{end}}
  clusterIP: {{$vip.V4}}
{{- if $.Dual}}
  clusterIPs: ["{{$vip.V4}}", "{{$vip.V6}}"]
  ipFamilies: [IPv4, IPv6]
  ipFamilyPolicy: RequireDualStack
{{- else}}
  clusterIPs: ["{{$vip.V4}}"]
  ipFamilies: [IPv4]
{{- end}}
  selector:
    app: {{$name}}
  ports:
  - name: web
    protocol: TCP
    port: {{$.Numbers.web}}
    targetPort: http
{{- if eq $name "web"}}
    nodePort: {{$.Numbers.webNode}}
  - name: dns
    protocol: UDP
    port: {{$.Numbers.dns}}
    targetPort: {{$.Numbers.udp}}
    nodePort: {{$.Numbers.dnsNode}}
{{- end}}
{{end}}`

const webYAML = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-v4
  namespace: demo
  labels:
    kubernetes.io/service-name: web
addressType: IPv4
ports:
- {name: web, protocol: TCP, port: {{.Numbers.tcp}}}
- {name: dns, protocol: UDP, port: {{.Numbers.udp}}}
endpoints:
{{- range .Web}}
- addresses: ["{{.V4}}"]
  nodeName: {{.Node}}
  conditions: {ready: true, serving: true, terminating: false}
{{- end}}
{{if .Dual}}---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-v6
  namespace: demo
  labels:
    kubernetes.io/service-name: web
addressType: IPv6
ports:
- {name: web, protocol: TCP, port: {{.Numbers.tcp}}}
- {name: dns, protocol: UDP, port: {{.Numbers.udp}}}
endpoints:
{{- range .Web}}
- addresses: ["{{.V6}}"]
  nodeName: {{.Node}}
  conditions: {ready: true, serving: true, terminating: false}
{{- end}}
{{end}}`

const soloYAML = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: solo-v4
  namespace: demo
  labels:
    kubernetes.io/service-name: solo
addressType: IPv4
ports:
- {name: web, protocol: TCP, port: {{.Numbers.tcp}}}
endpoints:
- addresses: ["{{.Solo.V4}}"]
  nodeName: {{.Solo.Node}}
  conditions: {ready: true}
`
