# Runs any one server of Openbell on standard input and output:
#
#   docker build -t openbell .
#   docker run -i --rm -v openbell:/home/openbell/.openbell openbell chartgen --trade
#
# The argument is the server's name, followed by options of `openbell mcp`. Settings are OPENBELL_ variables (docker run -e).
# The desk over HTTP at http://127.0.0.1:8742, for this machine alone:
#
#   docker run --rm --entrypoint openbell -p 127.0.0.1:8742:8742 -v openbell:/home/openbell/.openbell -e OPENBELL_ALLOWED_HOSTS=127.0.0.1,localhost openbell up --host 0.0.0.0
FROM python:3.13-slim AS built
WORKDIR /build
COPY .ci/install.py .ci/installers.lock .ci/
COPY requirements-run.lock ./
# Exactly the packages of the lock, compared with its hashes.
RUN python .ci/install.py --new /opt/openbell requirements-run.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python .ci/install.py /opt/openbell --no-deps --no-build-isolation .
# A container starts from the same files every time: compiled once here. Some packages hold templates that do not compile.
RUN /opt/openbell/bin/python -m compileall -q -j 0 /opt/openbell/lib || true

FROM python:3.13-slim
RUN useradd --create-home --uid 10001 openbell
COPY --from=built /opt/openbell /opt/openbell
ENV PATH=/opt/openbell/bin:$PATH PYTHONDONTWRITEBYTECODE=1
USER openbell
WORKDIR /home/openbell
# Created by its owner, so that a new volume belongs to the same user.
RUN mkdir -m 700 /home/openbell/.openbell
VOLUME /home/openbell/.openbell
ENTRYPOINT ["openbell", "mcp"]
CMD ["chart-signals"]
