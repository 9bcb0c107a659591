package helm

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Relative to this directory.
const (
	chartDir     = "weft"
	variantsDir  = "variants"
	manifestsDir = "../kubernetes"
)

// files are the chart and the variants, also for tests of other modules.
//
//go:embed all:weft variants
var files embed.FS

// Variants returns the names of the variants, sorted.
func Variants() ([]string, error) {
	names, err := fs.Glob(files, path.Join(variantsDir, "*.yaml"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("find variants: %w, %d files", err, len(names))
	}
	for i, f := range names {
		names[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	slices.Sort(names)
	return names, nil
}

// Files are the manifests of an installation by file name. Each is a stream of YAML documents.
type Files map[string][]byte

const (
	RBACFile = "rbac.yaml"
	WeftFile = "weft.yaml"
)

// Render returns the manifests for values. e may look up objects in a cluster.
//
// Possible errors: the chart's, such as values that its schema rejects.
func Render(values map[string]any, e engine.Engine) (Files, error) {
	c, err := load()
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "weft", Namespace: "kube-system", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	rendered, err := e.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("render chart: %w", err)
	}
	join := func(templates ...string) []byte {
		var docs []string
		for _, name := range templates {
			if text := strings.TrimSpace(rendered["weft/templates/"+name+".yaml"]); text != "" {
				docs = append(docs, strings.TrimPrefix(text, "---\n")+"\n")
			}
		}
		return []byte(strings.Join(docs, "---\n"))
	}
	return Files{RBACFile: join("rbac"), WeftFile: join("configmap", "daemonset", "hold", "podmonitor")}, nil
}

func load() (*chart.Chart, error) {
	var all []*loader.BufferedFile
	err := fs.WalkDir(files, chartDir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		all = append(all, &loader.BufferedFile{Name: strings.TrimPrefix(name, chartDir+"/"), Data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	return loader.LoadFiles(all)
}

// Manifests returns the files of a variant in deploy/kubernetes/VARIANT.
func Manifests(variant string) (Files, error) {
	text, err := files.ReadFile(path.Join(variantsDir, variant+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	values := make(map[string]any)
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		return nil, fmt.Errorf("read values of %s: %w", variant, err)
	}
	out, err := Render(values, engine.Engine{Strict: true})
	if err != nil {
		return nil, fmt.Errorf("variant %s: %w", variant, err)
	}
	// The file of values begins with a comment about the variant.
	var about strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		about.WriteString(line)
	}
	const made = "# Made of deploy/helm by `make generate`; do not edit.\n"
	out[RBACFile] = append([]byte(made+"---\n"), out[RBACFile]...)
	out[WeftFile] = append([]byte(made+"#\n"+about.String()+"---\n"), out[WeftFile]...)
	out["kustomization.yaml"] = []byte(made + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - " + RBACFile + "\n  - " + WeftFile + "\n")
	return out, nil
}
