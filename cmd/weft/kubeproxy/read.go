package kubeproxy

import (
	"reflect"
	"regexp"

	"go.yaml.in/yaml/v3"
	"k8s.io/kube-proxy/config/v1alpha1"

	"github.com/weft-proxy/weft/aggregator/access"
)

// The apiVersion and kind of a file.
const (
	APIVersion = v1alpha1.GroupName + "/v1alpha1"
	Kind       = "KubeProxyConfiguration"
)

// KindOf returns the kind in a file. If the file is not valid YAML, it is the kind in its
// first line "kind: ...", if there is one. It is empty if the file has none or cannot be
// read: reading the file as a configuration reports errors.
func KindOf(file string) string {
	data, err := access.Read(file)
	if err != nil {
		return ""
	}
	var head struct {
		Kind string `yaml:"kind"`
	}
	if yaml.Unmarshal(data, &head) != nil {
		// A file with a repeated field still has a kind.
		if m := kindLine.FindSubmatch(data); m != nil {
			return string(m[1])
		}
	}
	return head.Kind
}

var kindLine = regexp.MustCompile(`(?m)^"?kind"?:\s*"?(\w+)"?\s*,?\s*$`)

// document is a decoded file.
type document struct {
	config v1alpha1.KubeProxyConfiguration
	decoder
}

// parse decodes the configuration in a file. It sets no defaults and does not validate
// values.
//
// Possible errors: an *access.FileError.
func parse(file string, data []byte) (*document, error) {
	doc := &document{decoder: decoder{lines: make(map[string]int)}}
	if root := doc.Document(data, APIVersion, Kind); root != nil {
		doc.value("", root, reflect.ValueOf(&doc.config).Elem())
		got := [2]string{doc.config.APIVersion, doc.config.Kind}
		if doc.Err(file) == nil && got != [2]string{APIVersion, Kind} {
			doc.Add(root.Line, "", "got apiVersion %q and kind %q: want apiVersion %s and kind %s", got[0], got[1], APIVersion, Kind)
		}
	}
	return doc, doc.Err(file)
}
