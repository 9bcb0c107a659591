// Package nripb has the messages of NRI that weft needs; generated from nri.proto. The
// package with all of them, github.com/containerd/nri/pkg/api, also runs WebAssembly, which
// would be in weft's binary.
package nripb

//go:generate sh -c "protoc -I. --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative nri.proto"
