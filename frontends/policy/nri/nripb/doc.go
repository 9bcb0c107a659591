// Package nripb has the messages of NRI for weft; generated from nri.proto. The package with all
// messages, github.com/containerd/nri/pkg/api, would add a WebAssembly runtime to weft's binary.
package nripb

//go:generate sh -c "protoc -I. --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative nri.proto"
