// Command replay runs package apitest as an empty API server process, to measure its clients.
//
//	replay -listen 127.0.0.1:8001
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:8001", "address and port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := apitest.Start(net.Listen, *listen)
	if err != nil {
		return err
	}
	fmt.Println("listening on", s.Address())
	<-ctx.Done()
	s.Stop()
	return nil
}
