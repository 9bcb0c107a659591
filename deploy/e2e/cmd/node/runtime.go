package main

import (
	"context"

	"k8s.io/cri-client/pkg/fake"
)

// fakeRuntime keeps pods in memory, until the real runtime is here.
type fakeRuntime struct{}

func (fakeRuntime) Serve(ctx context.Context, socket string) error {
	r := fake.NewFakeRemoteRuntime()
	if err := r.Start("unix://" + socket); err != nil {
		return err
	}
	<-ctx.Done()
	r.Stop()
	return nil
}
