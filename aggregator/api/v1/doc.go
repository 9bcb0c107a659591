// Package weftv1 has the messages and calls of weft's socket API, generated from weft.proto.
// PROTOCOL.md explains their use. Written by hand are methods: text forms of names, the join of
// answers, counts, expire times, and the search for fields of a newer version (unknown.go).
package weftv1

// protoc comes from the system (apt install protobuf-compiler); its two plugins are tools of the
// module.
//
//go:generate sh -c "protoc --plugin=protoc-gen-go=\"$(go tool -n protoc-gen-go)\" --plugin=protoc-gen-go-grpc=\"$(go tool -n protoc-gen-go-grpc)\" --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative weft.proto"
