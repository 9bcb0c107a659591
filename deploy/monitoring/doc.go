// Package monitoring makes what an operator needs to watch weft with Prometheus and Grafana:
// recording rules and alerts, a runbook for each alert, and dashboards.
//
// In comes source.yaml; out go rules.yaml (for Prometheus), prometheusrule.yaml (for its
// operator), dashboards/*.json and deploy/docs/runbooks.md. Read source.go, then files.go.
// `make generate` writes the files. The tests check that they are what the source makes now,
// run the alerts on series that must and must not raise them, and run every query on what a real
// weft exports. TestIncidents has a real weft suffer faults, and
// writes incidents.md into the directory WEFT_PAGES: incident_linux_test.go has the faults, and clockshift sets
// weft's wall clock.
//
// It is a module of its own, because Prometheus's modules are many.
package monitoring
