package monitoring

import (
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// Paths relative to this directory.
const (
	rulesFile     = "rules.yaml"
	operatorFile  = "prometheusrule.yaml"
	dashboardsDir = "dashboards"
	runbooksFile  = "../docs/runbooks.md"
)

const made = "Made of deploy/monitoring/source.yaml by `make generate`; do not edit."

const runbooks = "https://github.com/weft-proxy/weft/blob/main/deploy/docs/runbooks.md#"

type object = map[string]any

// Files returns the content of all files by path.
func (s *Source) Files() (map[string][]byte, error) {
	groups := object{"groups": s.groups()}
	rules, err := yaml.Marshal(groups)
	if err != nil {
		return nil, fmt.Errorf("write rules: %w", err)
	}
	operator, err := yaml.Marshal(object{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": object{"name": "weft", "namespace": "kube-system", "labels": object{"app.kubernetes.io/name": "weft"}},
		"spec":     groups,
	})
	if err != nil {
		return nil, fmt.Errorf("write rules: %w", err)
	}
	out := map[string][]byte{
		rulesFile:    append([]byte("# "+made+"\n"), rules...),
		operatorFile: append([]byte("# "+made+"\n"), operator...),
		runbooksFile: []byte(s.runbooks()),
	}
	for _, d := range s.Dashboards {
		text, err := json.MarshalIndent(d.grafana(), "", "  ")
		if err != nil {
			return nil, fmt.Errorf("write dashboard %s: %w", d.Name, err)
		}
		out[dashboardsDir+"/"+d.Name+".json"] = append(text, '\n')
	}
	return out, nil
}

func (s *Source) groups() []object {
	var recording, alerts []object
	for _, r := range s.Recording {
		recording = append(recording, object{"record": r.Record, "expr": r.Expr})
	}
	for _, a := range s.Alerts {
		alerts = append(alerts, object{
			"alert": a.Alert, "expr": a.Expr, "for": a.For, "labels": object{"severity": a.Severity},
			"annotations": object{"summary": a.Summary, "description": a.Meaning, "runbook_url": runbooks + strings.ToLower(a.Alert)},
		})
	}
	return []object{{"name": "weft-recording", "rules": recording}, {"name": "weft-alerts", "rules": alerts}}
}

func (s *Source) runbooks() string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!-- %s -->\n\n# Runbooks\n\nThe alerts of [deploy/monitoring](../monitoring), with meaning, diagnosis and mitigation.\n\n", made)
	fmt.Fprint(&b, "| alert | severity | after |\n| --- | --- | --- |\n")
	for _, a := range s.Alerts {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", a.Alert, strings.ToLower(a.Alert), a.Severity, a.For)
	}
	for _, a := range s.Alerts {
		fmt.Fprintf(&b, "\n## %s\n\n    %s\n\n**Meaning.** %s\n\n**Diagnosis.** %s\n\n**Mitigation.** %s\n", a.Alert, a.Expr, a.Meaning, a.Diagnosis, a.Mitigation)
	}
	return b.String()
}

// Sizes in units of Grafana's grid, which has 24 columns.
const panelWidth, panelHeight = 12, 8

func (d *Dashboard) grafana() object {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	variables := []object{{"name": "datasource", "type": "datasource", "query": "prometheus"}}
	var panels []object
	byInstance := false
	for i, p := range d.Panels {
		var targets []object
		for j, e := range p.Expr {
			byInstance = byInstance || strings.Contains(e, "$instance")
			targets = append(targets, object{"refId": string(rune('A' + j)), "datasource": source, "expr": e, "legendFormat": p.Legend})
		}
		panels = append(panels, object{
			"id": i + 1, "title": p.Title, "type": p.Type, "datasource": source, "targets": targets,
			"gridPos":     object{"x": i % 2 * panelWidth, "y": i / 2 * panelHeight, "w": panelWidth, "h": panelHeight},
			"fieldConfig": object{"defaults": object{"unit": p.Unit, "min": 0}, "overrides": []object{}},
		})
	}
	if byInstance {
		variables = append(variables, object{
			"name": "instance", "type": "query", "datasource": source, "refresh": 2,
			"query": "label_values(weft_build_info, instance)",
		})
	}
	return object{
		"title": d.Title, "uid": "weft-" + d.Name, "tags": []string{"weft"}, "schemaVersion": 39, "editable": true,
		"refresh": "30s", "time": object{"from": "now-1h", "to": "now"}, "templating": object{"list": variables}, "panels": panels,
	}
}
