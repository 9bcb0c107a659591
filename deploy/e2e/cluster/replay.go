package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// Replay is an API server of negligible cost: the program frontends/testing/apitest/replay.
type Replay struct {
	Client     kubernetes.Interface
	Kubeconfig string
	Process    *lab.Process
}

// StartReplay starts one without objects on a host. It returns when it answers.
func StartReplay(ctx context.Context, h *lab.Host, binary, dir, logDir string) (*Replay, error) {
	address := netip.AddrPortFrom(h.Addresses.V4, securePort).String()
	p, err := h.Start("replay", filepath.Join(logDir, "replay.log"), nil, binary, "-listen", address)
	if err != nil {
		return nil, err
	}
	r := &Replay{Kubeconfig: filepath.Join(dir, "kubeconfig"), Process: p}
	const connections = 8
	config := &rest.Config{Host: "http://" + address, QPS: -1, Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if r.Client, err = kubernetes.NewForConfig(config); err == nil {
		err = clientcmd.WriteToFile(clientcmdapi.Config{
			Clusters:       map[string]*clientcmdapi.Cluster{"replay": {Server: config.Host}},
			AuthInfos:      map[string]*clientcmdapi.AuthInfo{"replay": {}},
			Contexts:       map[string]*clientcmdapi.Context{"replay": {Cluster: "replay", AuthInfo: "replay"}},
			CurrentContext: "replay",
		}, r.Kubeconfig)
	}
	if err == nil {
		err = lab.Within(ctx, time.Minute, func() error {
			_, err := r.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			return err
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start replay: %w", err), p.Err(), p.Kill())
	}
	return r, nil
}
