package source

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodService = `apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  clusterIP: 10.96.0.1
  ports:
    - port: 80
`

func TestDecodeErrorsNameTheLine(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		// want are the beginnings of the error's lines.
		want []string
	}{
		{"syntax", goodService + "---\napiVersion: v1\nkind: [Service\n", []string{"f.yaml:1"}},
		{"unknown field", strings.Replace(goodService, "- port: 80", "- port: 80\n      prot: TCP", 1),
			[]string{`f.yaml:9: unknown field "spec.ports[0].prot"`}},
		{"unknown field in a later document", goodService + "---\n" + strings.Replace(goodService, "clusterIP", "clusterIp", 1),
			[]string{`f.yaml:15: unknown field "spec.clusterIp"`}},
		{"unknown field at an alias", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [&p {port: 80, prot: TCP}, *p]}\n",
			[]string{`f.yaml:4: unknown field "spec.ports[0].prot"`, `f.yaml:4: unknown field "spec.ports[1].prot"`}},
		{"several", strings.NewReplacer("clusterIP", "clusterIp", "name:", "Name:").Replace(goodService),
			[]string{`f.yaml:4: unknown field "metadata.Name"`, `f.yaml:6: unknown field "spec.clusterIp"`}},
		{"wrong type", strings.Replace(goodService, "port: 80", "port: eighty", 1), []string{"f.yaml:8: json: cannot unmarshal"}},
		{"repeated key", strings.Replace(goodService, "kind: Service", "kind: Service\nkind: Node", 1), []string{"f.yaml:3: "}},
		{"no kind", "# a comment\n\nmetadata:\n  name: x\n", []string{"f.yaml:3: not a Kubernetes object"}},
		{"a scalar", "hello\n", []string{"f.yaml:1: not a Kubernetes object"}},
		{"kind with a typo", strings.Replace(goodService, "Service", "Servce", 1), []string{"f.yaml:2: unknown kind Servce of v1"}},
		{"old version", "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlices\n", []string{"f.yaml:2: unknown kind"}},
		{"version that no server has", "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: a}\n",
			[]string{"f.yaml:1: no API server has EndpointSlice of discovery.k8s.io/v1beta1 any more: use discovery.k8s.io/v1"}},
		{"list of a version that no server has", "kind: EndpointSliceList\napiVersion: discovery.k8s.io/v1beta1\nitems: []\n",
			[]string{"f.yaml:2: no API server has EndpointSliceList of discovery.k8s.io/v1beta1 any more: use discovery.k8s.io/v1"}},
		{"name that the API refuses", strings.Replace(goodService, "name: web", "name: Web_1", 1),
			[]string{"f.yaml:1: Service default/Web_1: an API server would refuse it: metadata.name: Invalid value"}},
		{"label that the API refuses", strings.Replace(goodService, "name: web", "name: web\n  labels: {app: not valid}", 1),
			[]string{"f.yaml:1: Service default/web: an API server would refuse it: metadata.labels: Invalid value"}},
		{"kind of the network with a typo", "apiVersion: networking.k8s.io/v1\nkind: ServiceCidr\n", []string{"f.yaml:2: unknown kind ServiceCidr"}},
		{"ranges missing", "apiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: a}\n", []string{"f.yaml:1: ServiceCIDR a: spec.cidrs is missing"}},
		{"cut in the middle", goodService[:strings.Index(goodService, "  ports")], []string{"f.yaml:1: Service default/web: spec.ports is missing"}},
		{"cut in a port", strings.TrimSuffix(goodService, "port: 80\n"), []string{"f.yaml:1: Service default/web: spec.ports[].port is missing"}},
		{"empty", " \n", []string{"f.yaml: the file is empty"}},
		{"no name", strings.Replace(goodService, "name: web", "namespace: x", 1), []string{"f.yaml:1: Service x/: metadata.name is missing"}},
		{"twice in a file", goodService + "---\n" + goodService, []string{"f.yaml:10: Service default/web is already in line 1 of this file"}},
		{"in a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata: {name: a}\n  spec:\n    clusterip: x\n    ports: [{port: 1}]\n",
			[]string{`f.yaml:8: unknown field "spec.clusterip"`}},
		{"list without items", "apiVersion: v1\nkind: ServiceList\n", []string{"f.yaml:1: the list has no items"}},
		{"slice without a type", "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\n", []string{"f.yaml:1: EndpointSlice default/a: addressType is missing"}},
		{"alias bomb", "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n",
			[]string{"f.yaml:"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects, _, err := decode("f.yaml", []byte(tt.text), compiled(t))
			if err == nil {
				t.Fatalf("no error, %d objects", len(objects))
			}
			if file := (*FileError)(nil); !errors.As(err, &file) || file.Unwrap() == nil {
				t.Errorf("error %v: want a FileError with its cause", err)
			}
			got := strings.Split(err.Error(), "\n")
			if len(got) != len(tt.want) {
				t.Fatalf("error has %d lines, want %d:\n%v", len(got), len(tt.want), err)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tt.want[i]) {
					t.Errorf("error %q, want %q...", got[i], tt.want[i])
				}
			}
		})
	}
}

func TestDecode(t *testing.T) {
	objects, other, err := decode("f.yaml", []byte("# comment only\n---\n---   # marker with a comment\n"+goodService+
		"---\r\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {anything: 1}\n"+
		"---\napiVersion: example.com/v1\nkind: Custom\n"+
		"---\napiVersion: v1\nkind: NodeList\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n"+
		"---\n{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"n2\"}}\n"+
		"---\napiVersion: networking.k8s.io/v1\nkind: ServiceCIDR\nmetadata: {name: kubernetes}\nspec: {cidrs: [10.96.0.0/16, fd00:96::/112]}\n"+
		"---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: deny}\nspec: {}\n"+
		"---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s}, addressType: IPv4, endpoints: [], status: {}}\n"), compiled(t))
	must(t, err)
	var got []string
	for _, o := range objects {
		got = append(got, fmt.Sprintf("%s@%d", o.id, o.line))
	}
	if want := "Service default/web@4 Node n1@24 Node n2@26 ServiceCIDR kubernetes@28 EndpointSlice default/s@41"; strings.Join(got, " ") != want {
		t.Errorf("objects %v, want %s", got, want)
	}
	if len(other) != 3 || other[0].kind != "apps/v1 Deployment" {
		t.Errorf("skipped %v", other)
	}
}

// TestExamples keeps the examples of the repository good.
func TestExamples(t *testing.T) {
	files, _ := filepath.Glob("../../deploy/examples/manifests/*.yaml")
	if len(files) == 0 {
		t.Fatal("no example manifests")
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		must(t, err)
		objects, other, err := decode(filepath.Base(file), content, compiled(t))
		if err != nil || len(other) > 0 || len(objects) == 0 {
			t.Errorf("%s: %d objects, %v skipped, error %v", file, len(objects), other, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(goodService))
	f.Add([]byte(goodService + "---\n" + goodService))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [{}, 1, null, {kind: List, apiVersion: v1, items: []}]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("--- \n---x\n...\n"))
	files, _ := filepath.Glob("../../deploy/examples/manifests/*.yaml")
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil {
			f.Add(content)
		}
	}
	kinds := compiled(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		objects, _, err := decode("f.yaml", content, kinds)
		if err != nil && objects != nil {
			t.Error("objects in spite of an error")
		}
	})
}
