package server

import "net"

// WrapListener puts something between the socket and gRPC. It is called before
// Serve.
func (s *Server) WrapListener(wrap func(net.Listener) net.Listener) { s.listener = wrap(s.listener) }
