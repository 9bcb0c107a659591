// Package monitoring makes recording rules, alerts, runbooks and dashboards for Prometheus and Grafana.
//
// In comes source.yaml; out go rules.yaml (for Prometheus), prometheusrule.yaml (for its operator),
// dashboards/*.json and deploy/docs/runbooks.md, by `make generate`. Read source.go, then files.go. The tests
// run the alerts on series, and every query on a real weft's metrics. TestIncidents has a real weft suffer
// faults (incident_linux_test.go), and writes incidents.md into the directory WEFT_PAGES. clockshift sets
// weft's wall clock.
//
// A separate module keeps Prometheus's modules out of the product.
package monitoring
