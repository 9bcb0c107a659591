package helm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

// The directories, relative to this one.
const (
	chartDir     = "weft"
	variantsDir  = "variants"
	manifestsDir = "../kubernetes"
)

// Variants returns the names of the variants, sorted.
func Variants() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(variantsDir, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find variants: %w, %d files", err, len(files))
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	slices.Sort(files)
	return files, nil
}

// Files are the manifests of an installation, by the name of the file. Each is a stream of YAML
// documents.
type Files map[string][]byte

// The files: the rights in the API, and the rest.
const (
	rbacFile = "rbac.yaml"
	weftFile = "weft.yaml"
)

// Render returns the manifests for values. e is the engine of helm, which knows a cluster or
// not.
//
// An error is that of the chart, such as values that its schema refuses.
func Render(values map[string]any, e engine.Engine) (Files, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	all, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "weft", Namespace: "kube-system", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	rendered, err := e.Render(chart, all)
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
	return Files{rbacFile: join("rbac"), weftFile: join("configmap", "daemonset", "podmonitor")}, nil
}

// Manifests returns the files of a variant in deploy/kubernetes/VARIANT.
func Manifests(variant string) (Files, error) {
	text, err := os.ReadFile(filepath.Join(variantsDir, variant+".yaml"))
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	values := make(map[string]any)
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		return nil, fmt.Errorf("read values of %s: %w", variant, err)
	}
	files, err := Render(values, engine.Engine{Strict: true})
	if err != nil {
		return nil, fmt.Errorf("variant %s: %w", variant, err)
	}
	// The comment of the values says what the variant is.
	var about strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			break
		}
		about.WriteString(line)
	}
	const made = "# Made of deploy/helm by `make manifests`; do not edit.\n"
	files[rbacFile] = append([]byte(made+"---\n"), files[rbacFile]...)
	files[weftFile] = append([]byte(made+"#\n"+about.String()+"---\n"), files[weftFile]...)
	// A base for overlays.
	files["kustomization.yaml"] = []byte(made + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - " + rbacFile + "\n  - " + weftFile + "\n")
	return files, nil
}
