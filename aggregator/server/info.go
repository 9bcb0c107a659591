package server

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-proxy/weft/aggregator/admission"
	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
)

func (s *service) GetInfo(context.Context, *weftv1.GetInfoRequest) (*weftv1.GetInfoResponse, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, fmt.Errorf("get the kernel's release: %w", err)
	}
	features := s.agg.Features()
	if s.flows != nil {
		features = append(features, "flows")
		slices.Sort(features)
	}
	return &weftv1.GetInfoResponse{
		Version: s.agg.Version(), Features: features,
		Kernel: &weftv1.Kernel{Release: unix.ByteSliceToString(name.Release[:]), Owner: s.agg.OwnsTables()},
		Limits: &weftv1.Limits{
			MessageBytes: MaxMessage, UpdateBytes: admission.MaxBytes, Tables: admission.MaxTables, Chains: admission.MaxChains,
			Sets: admission.MaxSets, Objects: admission.MaxObjects, Rules: admission.MaxRules, Elements: admission.MaxElements,
			RuleBytes: admission.MaxRuleText, ElementBytes: admission.MaxElementText, Fragments: admission.MaxFragments,
			PlanFragments: admission.MaxPlan, PendingUpdates: maxInFlight, PendingBytes: maxInFlightBytes,
		},
	}, nil
}
