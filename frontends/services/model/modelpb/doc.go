// Package modelpb is the serialised form of the local model, generated from
// model.proto.
package modelpb

//go:generate sh -c "protoc -I. --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative model.proto"
