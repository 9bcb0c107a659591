// Package readiness measures how soon weft follows the readiness of a local pod at the real kubelet's Pods API,
// with and without an API server.
//
//	cd deploy/e2e && go test -count=1 -v -timeout 30m ./readiness
//	go test -count=1 -v -timeout 30m ./readiness -readiness.changes 100
//
// A node runs the kubelet, weft and two pods of a Service. Their readiness probes ask the test, which knows when
// a probe failed. The logs of the last run are in bin/readiness/logs.
package readiness
