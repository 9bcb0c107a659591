package monitoring

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Source is the content of source.yaml.
type Source struct {
	Recording  []Recording `json:"recording"`
	Alerts     []Alert     `json:"alerts"`
	Dashboards []Dashboard `json:"dashboards"`
}

// Recording is a recording rule.
type Recording struct {
	Record string `json:"record"`
	Expr   string `json:"expr"`
}

// Alert is an alert and its runbook. Texts are Markdown, except Summary, which is a template of
// Prometheus.
type Alert struct {
	Alert      string `json:"alert"`
	Expr       string `json:"expr"`
	For        string `json:"for"`
	Severity   string `json:"severity"`
	Summary    string `json:"summary"`
	Meaning    string `json:"meaning"`
	Diagnosis  string `json:"diagnosis"`
	Mitigation string `json:"mitigation"`
}

// Dashboard is a dashboard of Grafana.
type Dashboard struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	Panels []Panel `json:"panels"`
}

// Panel is a panel of a dashboard. Expr may use the variable $instance.
type Panel struct {
	Title  string   `json:"title"`
	Unit   string   `json:"unit"`
	Type   string   `json:"type"`
	Expr   []string `json:"expr"`
	Legend string   `json:"legend"`
}

// Read reads a source. An unknown field is an error.
func Read(path string) (*Source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read monitoring: %w", err)
	}
	var s Source
	if err := yaml.UnmarshalStrict(text, &s); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &s, nil
}

// Queries returns all expressions by place. instance replaces $instance in dashboards.
func (s *Source) Queries(instance string) map[string]string {
	out := make(map[string]string)
	for _, r := range s.Recording {
		out[r.Record] = r.Expr
	}
	for _, a := range s.Alerts {
		out[a.Alert] = a.Expr
	}
	for _, d := range s.Dashboards {
		for _, p := range d.Panels {
			for i, e := range p.Expr {
				out[fmt.Sprintf("%s: %s, %d", d.Name, p.Title, i+1)] = os.Expand(e, func(name string) string {
					if name == "instance" {
						return instance
					}
					return "$" + name
				})
			}
		}
	}
	return out
}
