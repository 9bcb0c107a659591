// Package weftv1 has the messages and calls of weft's socket API, generated from weft.proto.
// PROTOCOL.md explains their use. Other files add methods by hand.
package weftv1

// protoc comes from the system (apt install protobuf-compiler); its two plugins are tools of the
// module.
//
//go:generate sh -c "protoc --plugin=protoc-gen-go=\"$(go tool -n protoc-gen-go)\" --plugin=protoc-gen-go-grpc=\"$(go tool -n protoc-gen-go-grpc)\" --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative weft.proto"
