// Package statepb is the serialised form of the network policies that a node enforces, and the
// service LocalState for readers; generated from state.proto.
package statepb

//go:generate sh -c "protoc -I. -I../../../publish/outcomepb --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative state.proto"
