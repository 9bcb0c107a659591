// Package helm renders the chart of weft, which is the single source of the manifests in
// deploy/kubernetes.
//
// In come deploy/helm/weft and the values of a variant (variants/*.yaml); out goes one file for
// each variant. Read render.go. `make generate` writes the files, and the tests check that they
// are what the chart makes now, that every object is valid, and what the chart refuses.
//
// It is a module of its own, because helm's modules are many.
package helm
