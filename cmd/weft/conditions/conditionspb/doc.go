// Package conditionspb has the messages of the conditions of a process of weft, and the
// service Conditions that offers them; generated from conditions.proto.
package conditionspb

//go:generate sh -c "protoc -I. --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --plugin=protoc-gen-go-grpc=$(go tool -n protoc-gen-go-grpc) --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative conditions.proto"
