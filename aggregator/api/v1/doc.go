// Package weftv1 is the wire format of weft's socket API, generated from
// weft.proto. PROTOCOL.md beside it says how to use it.
//
// It holds nothing that is written by hand: what a message means, which
// messages are admitted and what is done with them is the business of
// aggregator and aggregator/server.
package weftv1

// protoc comes from the system (apt install protobuf-compiler); its two plugins
// are tools of the module, so their versions are those of go.mod.
//
//go:generate sh -c "protoc --plugin=protoc-gen-go=\"$(go tool -n protoc-gen-go)\" --plugin=protoc-gen-go-grpc=\"$(go tool -n protoc-gen-go-grpc)\" --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative weft.proto"
