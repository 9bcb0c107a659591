// Package helm renders the chart of weft, the source of the manifests in deploy/kubernetes.
//
// In come deploy/helm/weft and the values of a variant (variants/*.yaml); out goes one file for each variant.
// Read render.go. `make generate` writes the files. The tests check that they are current and valid, and which
// values the chart rejects. A separate module keeps helm's modules out of the product.
package helm
