package lab

import (
	"context"
	"io"
	"net/http"
	"time"
)

// Page is the answer to an HTTP request.
type Page struct {
	Status int
	Header http.Header
	Body   string
}

// Get asks from the namespace, with a new connection. The host of the address must be numeric.
func (n *Namespace) Get(ctx context.Context, url string, timeout time.Duration) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Page{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return Page{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return Page{response.StatusCode, response.Header, string(body)}, err
}
