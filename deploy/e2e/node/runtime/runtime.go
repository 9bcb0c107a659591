package runtime

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/util/cert"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
)

// Config configures a Runtime.
type Config struct {
	// Dir belongs to the runtime alone.
	Dir string
	// Programs has the program container and the programs of images.
	Programs string
}

// Runtime has the pods of a node.
type Runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer

	cfg     Config
	stream  streaming.Server
	starter *starter
	// certificate and key are for localhost.
	certificate, key []byte
	ports            portTable
	// lingering bounds the delay of a command's end by processes that keep its output open.
	lingering time.Duration

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
	addresses  pool
}

// New returns a runtime without pods.
func New(cfg Config) (*Runtime, error) {
	if cfg.Dir == "" || cfg.Programs == "" {
		return nil, errors.New("make container runtime: Dir and Programs are required")
	}
	r := &Runtime{cfg: cfg, starter: newStarter(), lingering: time.Second, sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
	for _, dir := range []string{r.root(), r.scratch()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make container runtime: %w", err)
		}
	}
	var err error
	if r.certificate, r.key, err = cert.GenerateSelfSignedCertKey("localhost", nil, nil); err != nil {
		return nil, fmt.Errorf("make container runtime: %w", err)
	}
	streams := streaming.DefaultConfig
	streams.Addr = "127.0.0.1:0"
	if r.stream, err = streaming.NewServer(streams, (*streamer)(r)); err != nil {
		return nil, fmt.Errorf("make container runtime: %w", err)
	}
	return r, nil
}

// Every container mounts on root and scratch in its own namespace.
func (r *Runtime) root() string    { return filepath.Join(r.cfg.Dir, "root") }
func (r *Runtime) scratch() string { return filepath.Join(r.cfg.Dir, "scratch") }

// Serve answers on the socket until ctx ends, then ends all containers.
func (r *Runtime) Serve(ctx context.Context, socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("serve CRI: %w", err)
	}
	const largest = 16 << 20 // of a message: the kubelet's own limit
	server := grpc.NewServer(grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(largest))
	cri.RegisterRuntimeServiceServer(server, r)
	cri.RegisterImageServiceServer(server, r)
	failed := make(chan error, 2)
	go func() { failed <- server.Serve(listener) }()
	go func() { failed <- r.stream.Start(true) }()
	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
	}
	server.Stop()
	return errors.Join(err, r.stream.Stop(), r.close())
}

func (r *Runtime) close() error {
	r.mu.Lock()
	var all []*sandbox
	for _, s := range r.sandboxes {
		all = append(all, s)
	}
	r.mu.Unlock()
	var errs []error
	for _, s := range all {
		errs = append(errs, r.stopSandbox(s))
	}
	return errors.Join(append(errs, r.ports.close())...)
}

func newID() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func (r *Runtime) findSandbox(id string) (*sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, status.Errorf(codes.NotFound, "no sandbox %s", id)
}

func (r *Runtime) findContainer(id string) (*container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		return c, nil
	}
	return nil, status.Errorf(codes.NotFound, "no container %s", id)
}

// Version implements CRI.
func (r *Runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "weft-e2e", RuntimeVersion: "2.0.0", RuntimeApiVersion: "v1"}, nil
}

// Status implements CRI. The network is ready after the kubelet has sent the prefixes of the pods.
func (r *Runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	r.mu.Lock()
	known := len(r.addresses.prefixes) > 0
	r.mu.Unlock()
	network := &cri.RuntimeCondition{Type: cri.NetworkReady, Status: known}
	if !known {
		network.Reason, network.Message = "NoPodCIDR", "the Node object has no podCIDRs yet"
	}
	return &cri.StatusResponse{
		Status:          &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{{Type: cri.RuntimeReady, Status: true}, network}},
		RuntimeHandlers: []*cri.RuntimeHandler{{Features: &cri.RuntimeHandlerFeatures{}}},
		Features:        &cri.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

// UpdateRuntimeConfig implements CRI. It sets the prefixes of the node's pods.
func (r *Runtime) UpdateRuntimeConfig(_ context.Context, req *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	prefixes, err := parsePrefixes(req.GetRuntimeConfig().GetNetworkConfig().GetPodCidr())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(prefixes) > 0 {
		r.addresses.prefixes = prefixes
	}
	return &cri.UpdateRuntimeConfigResponse{}, nil
}

// RuntimeConfig implements CRI.
func (r *Runtime) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS}}, nil
}

func addressesOf(all []netip.Addr) []string {
	var text []string
	for _, a := range all {
		text = append(text, a.String())
	}
	return text
}
