import pytest

from antiphon.core.errors import ApiError, ErrorKind
from antiphon.core.limits import RateLimiter
from tests.support.clock import Clock


def refusal(limiter: RateLimiter, project: str = "p") -> ApiError:
    with pytest.raises(ApiError) as caught:
        limiter.take(project)
    assert caught.value.kind is ErrorKind.RATE_LIMIT
    return caught.value


def test_so_many_requests_may_be_made_at_once_and_no_more() -> None:
    limiter = RateLimiter(3, Clock())
    assert [limiter.take("p").remaining for _ in range(3)] == [2, 1, 0]
    refusal(limiter)


def test_the_bucket_fills_steadily() -> None:
    clock = Clock()
    limiter = RateLimiter(60, clock)
    for _ in range(60):
        limiter.take("p")
    refusal(limiter)
    clock.now += 1
    limiter.take("p")
    refusal(limiter)
    clock.now += 2
    limiter.take("p")
    limiter.take("p")
    refusal(limiter)


def test_the_bucket_never_holds_more_than_a_minutes_requests() -> None:
    clock = Clock()
    limiter = RateLimiter(3, clock)
    limiter.take("p")
    clock.now += 1e9
    assert limiter.take("p").remaining == 2


@pytest.mark.parametrize(("per_minute", "seconds"), [(60, 1), (6, 10), (1, 60), (600, 1)])
def test_a_refusal_says_when_to_come_again_and_keeps_its_word(
    per_minute: int, seconds: int
) -> None:
    clock = Clock()
    limiter = RateLimiter(per_minute, clock)
    for _ in range(per_minute):
        limiter.take("p")
    error = refusal(limiter)
    assert error.retry_after == seconds
    clock.now += seconds
    limiter.take("p")


def test_being_refused_costs_nothing() -> None:
    clock = Clock()
    limiter = RateLimiter(6, clock)
    for _ in range(6):
        limiter.take("p")
    for _ in range(9):
        clock.now += 1
        refusal(limiter)
    clock.now += 1
    limiter.take("p")


def test_projects_do_not_share_their_requests() -> None:
    limiter = RateLimiter(1, Clock())
    limiter.take("p")
    refusal(limiter, "p")
    limiter.take("q")


def test_the_headers_tell_what_is_left() -> None:
    limiter = RateLimiter(60, Clock())
    limiter.take("p")
    assert limiter.take("p").headers == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "58",
        "x-ratelimit-reset-requests": "2.000s",
    }


def test_a_refusal_has_the_headers_too() -> None:
    limiter = RateLimiter(1, Clock())
    limiter.take("p")
    error = refusal(limiter)
    assert error.headers["x-ratelimit-remaining-requests"] == "0"
    assert error.headers["x-ratelimit-reset-requests"] == "60.000s"
