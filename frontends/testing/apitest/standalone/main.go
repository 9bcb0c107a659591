// Command standalone runs package apitest as a process, for tests of other modules.
//
//	standalone -address 127.0.0.1:6443 -objects FILE [-cert FILE -key FILE] [-status 401]
//
// It has the objects of a YAML file and objects written to it. With -status every answer has this status.
package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/weft-proxy/weft/frontends/testing/apitest"
)

func main() {
	address := flag.String("address", "127.0.0.1:6443", "address to listen on")
	objects := flag.String("objects", "", "YAML file with the objects")
	cert := flag.String("cert", "", "certificate (PEM); without one it speaks HTTP")
	key := flag.String("key", "", "key of the certificate (PEM)")
	status := flag.Int("status", 0, "status of all answers; 0 means the right ones")
	flag.Parse()
	if err := run(*address, *objects, *cert, *key, *status); err != nil {
		fmt.Fprintln(os.Stderr, "standalone:", err)
		os.Exit(1)
	}
}

func run(address, objects, cert, key string, status int) error {
	listen := net.Listen
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("read certificate: %w", err)
		}
		listen = func(network, address string) (net.Listener, error) {
			return tls.Listen(network, address, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
		}
	}
	api, err := apitest.Start(listen, address)
	if err != nil {
		return err
	}
	if err := load(api, objects); err != nil {
		return err
	}
	api.Fault(func(r apitest.Request) apitest.Fault {
		fmt.Println(r.Verb, r.Resource)
		return apitest.Fault{Status: status}
	})
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	<-end
	return nil
}

func load(api *apitest.Server, file string) error {
	text, err := os.ReadFile(file) //nolint:gosec // the file that the user names
	if err != nil {
		return fmt.Errorf("read objects: %w", err)
	}
	for d := utilyaml.NewYAMLToJSONDecoder(bytes.NewReader(text)); ; {
		var raw rawObject
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read objects of %s: %w", file, err)
		}
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
		if err != nil {
			return fmt.Errorf("read objects of %s: %w", file, err)
		}
		o, ok := decoded.(apitest.Object)
		if !ok {
			return fmt.Errorf("read objects of %s: %T is not an object", file, decoded)
		}
		api.Set(o)
	}
}

type rawObject []byte

func (r *rawObject) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}
