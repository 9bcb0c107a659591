package peers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// api is the engines' API server, a separate process.
type api struct {
	client     kubernetes.Interface
	kubeconfig string
	process    *lab.Process
}

const replay = "replay"

// startAPI starts an API server without objects in Control.
func startAPI(ctx context.Context, l *lab.Lab) (*api, error) {
	if err := errors.Join(os.MkdirAll(runDir, 0o755), os.MkdirAll(logDir, 0o755)); err != nil {
		return nil, fmt.Errorf("make directories: %w", err)
	}
	address := netip.AddrPortFrom(l.Control.Addresses.V4, 6443).String()
	p, err := l.Control.Start(replay, filepath.Join(logDir, "replay.log"), nil, tests.Path(replay), "-listen", address)
	if err != nil {
		return nil, err
	}
	a := &api{kubeconfig: filepath.Join(runDir, "kubeconfig"), process: p}
	config := &rest.Config{Host: "http://" + address, QPS: -1}
	if a.client, err = kubernetes.NewForConfig(config); err == nil {
		err = clientcmd.WriteToFile(clientcmdapi.Config{
			Clusters:       map[string]*clientcmdapi.Cluster{replay: {Server: config.Host}},
			AuthInfos:      map[string]*clientcmdapi.AuthInfo{replay: {}},
			Contexts:       map[string]*clientcmdapi.Context{replay: {Cluster: replay, AuthInfo: replay}},
			CurrentContext: replay,
		}, a.kubeconfig)
	}
	if err == nil {
		err = a.answers(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start API server: %w", err), p.Err(), p.Kill())
	}
	return a, nil
}

func (a *api) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (a *api) fill(ctx context.Context, c *cluster) error {
	core := a.client.CoreV1()
	var work []func() error
	for _, o := range c.nodes {
		work = append(work, func() error {
			_, err := core.Nodes().Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	for _, o := range c.namespaces {
		work = append(work, func() error {
			_, err := core.Namespaces().Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	for _, o := range c.pods {
		work = append(work, func() error {
			_, err := core.Pods(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	for _, o := range c.policies {
		work = append(work, func() error {
			_, err := a.client.NetworkingV1().NetworkPolicies(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
			return err
		})
	}
	const writers = 4
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() {
			for j := i; j < len(work) && errs[i] == nil; j += writers {
				errs[i] = work[j]()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write the cluster to the API: %w", err)
	}
	return nil
}

func (a *api) write(ctx context.Context, p *networkingv1.NetworkPolicy) error {
	if _, err := a.client.NetworkingV1().NetworkPolicies(p.Namespace).Update(ctx, p, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write policy %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
