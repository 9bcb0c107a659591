// Package weftv1 has the messages and calls of weft's socket API, generated from
// weft.proto. PROTOCOL.md beside it explains how to use it.
//
// Written by hand are only the text forms of names (name.go), how parts of an answer are
// joined (join.go), and the search for fields of a newer version (unknown.go). What a
// message means is the business of packages aggregator and server.
package weftv1

// protoc comes from the system (apt install protobuf-compiler); its two plugins
// are tools of the module, so their versions are those of go.mod.
//
//go:generate sh -c "protoc --plugin=protoc-gen-go=\"$(go tool -n protoc-gen-go)\" --plugin=protoc-gen-go-grpc=\"$(go tool -n protoc-gen-go-grpc)\" --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative weft.proto"
