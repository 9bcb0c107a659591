package publish

// LatencyBuckets are the bounds of histograms of the time from an event to the commit that has
// it, in seconds: 100 us to 50 s. The 5 and 10 ms that frontends are held to are among them.
var LatencyBuckets = []float64{
	1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, .1, .2, .5, 1, 2, 5, 10, 20, 50,
}
