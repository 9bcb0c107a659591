// Package modelpb is the serialised local model, and the service LocalState for readers on weft's socket;
// generated from model.proto and localstate.proto.
package modelpb

//go:generate sh -c "protoc -I. -I../../../publish/outcomepb --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative model.proto localstate.proto"
