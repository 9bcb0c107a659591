package aggregatortest

import weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"

// ObjectName returns the name that has a text form.
func ObjectName(text string) *weftv1.ObjectName { return weftv1.ParseObjectName(text) }
