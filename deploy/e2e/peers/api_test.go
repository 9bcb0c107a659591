package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	servers "github.com/weft-proxy/weft/deploy/e2e/cluster"
	"github.com/weft-proxy/weft/deploy/e2e/lab"
)

// api is the engines' API server.
type api struct{ *servers.Replay }

const replay = "replay"

// startAPI starts an API server without objects in Control.
func startAPI(ctx context.Context, l *lab.Lab) (*api, error) {
	if err := errors.Join(os.MkdirAll(runDir, 0o755), os.MkdirAll(logDir, 0o755)); err != nil {
		return nil, fmt.Errorf("make directories: %w", err)
	}
	r, err := servers.StartReplay(ctx, l.Control, tests.Path(replay), runDir, logDir)
	return &api{r}, err
}

func (a *api) fill(ctx context.Context, c *cluster) error {
	core := a.Client.CoreV1()
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
			_, err := a.Client.NetworkingV1().NetworkPolicies(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
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
	if _, err := a.Client.NetworkingV1().NetworkPolicies(p.Namespace).Update(ctx, p, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write policy %s/%s: %w", p.Namespace, p.Name, err)
	}
	return nil
}
