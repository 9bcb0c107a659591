package kubeproxy

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/aggregator/access"
)

// APIVersion and Kind of a configuration file.
const (
	APIVersion = v1alpha1.GroupName + "/v1alpha1"
	Kind       = "KubeProxyConfiguration"
)

// KindOf returns the kind in a file, "" if missing or unreadable; decoding reports errors.
func KindOf(file string) string {
	data, err := access.Read(file)
	if err != nil {
		return ""
	}
	var head struct {
		Kind string `yaml:"kind"`
	}
	if yaml.Unmarshal(data, &head) != nil {
		// A file with a repeated field does not decode.
		if m := kindLine.FindSubmatch(data); m != nil {
			return string(m[1])
		}
	}
	return head.Kind
}

var kindLine = regexp.MustCompile(`(?m)^"?kind"?:\s*"?(\w+)"?\s*,?\s*$`)

type document struct {
	config v1alpha1.KubeProxyConfiguration
	// the file is v1alpha2
	second   bool
	warnings []string
	access.Decoder
}

// line returns the line of a field, or of the nearest field around it.
func (d *document) line(path string) int {
	for {
		if n, ok := d.Lines[path]; ok {
			return n
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return 0
		}
		path = path[:i]
	}
}

// parse neither sets defaults nor validates values.
func parse(file string, data []byte) (*document, error) {
	doc := &document{Decoder: access.Decoder{Kubernetes: true}}
	if root := new(access.Problems).Document(data, apiVersion2, Kind); root != nil && root.Kind == yaml.MappingNode {
		doc.decode2(doc.Document(data, apiVersion2, Kind))
	} else if root = doc.Document(data, APIVersion, Kind); root != nil {
		doc.Decode(root, &doc.config)
	}
	return doc, doc.Err(file)
}
