package server

import (
	"slices"

	"google.golang.org/grpc"
)

// registrar registers services with calls through interceptor.call. It serves unary calls as
// streams, the same on the wire, because gRPC receives unary requests before it calls its own
// interceptors.
type registrar struct {
	*grpc.Server
	interceptor *interceptor
}

func (r registrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	streams := *desc
	streams.Methods = nil
	streams.Streams = slices.Clone(desc.Streams)
	for _, m := range desc.Methods {
		streams.Streams = append(streams.Streams, grpc.StreamDesc{StreamName: m.MethodName, Handler: func(srv any, ss grpc.ServerStream) error {
			resp, err := m.Handler(srv, ss.Context(), ss.RecvMsg, nil)
			if err != nil {
				return err
			}
			return ss.SendMsg(resp)
		}})
	}
	for i, d := range streams.Streams {
		info := &grpc.StreamServerInfo{
			FullMethod:     "/" + desc.ServiceName + "/" + d.StreamName,
			IsClientStream: d.ClientStreams,
			IsServerStream: d.ServerStreams,
		}
		streams.Streams[i].Handler = func(srv any, ss grpc.ServerStream) error {
			return r.interceptor.call(srv, ss, info, d.Handler)
		}
	}
	r.Server.RegisterService(&streams, impl)
}
